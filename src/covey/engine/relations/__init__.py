"""Relations between columns: public candidates, and exact counts of the rows that break them."""
