"""What every part stands on: directed rounding, intervals, files, locks, texts."""
