"""Tables in Spark: executors encode and count, the driver alone draws noise."""
