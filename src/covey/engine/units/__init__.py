"""What is protected, row by row or person by person. No randomness here."""
