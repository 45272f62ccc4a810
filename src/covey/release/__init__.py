"""What leaves: bundles that hold only public things."""
