"""NIST's own benchmark: the Collaborative Research Cycle's survey excerpt, judged by the SDNist package."""
