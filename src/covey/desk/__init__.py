"""Screens: the command line, the local app and the demonstration. They decide nothing."""
