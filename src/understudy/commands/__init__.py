"""What the CLI's verbs do. Text and values in, text and values out; only `cli` prints."""
