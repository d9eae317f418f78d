"""Vendors' wire formats, read and written. Pure: bytes in, neutral values out, and back."""
