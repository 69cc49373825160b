"""Lower precision: bf16 and f16 computation, packed constants."""
