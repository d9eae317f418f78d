"""The neutral conversation: what is said, independent of any vendor's wire. Pure."""
