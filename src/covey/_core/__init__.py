"""Mathematics on arrays: numpy and scipy, no names, files, printing or privacy policy."""
