"""Vendors' wire formats, read and written. Pure: bytes and JSON in, neutral values out, and back."""
