"""One kernel: lower, schedule, finalize, emit; equal ones are made once."""
