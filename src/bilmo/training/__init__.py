"""Train, fine-tune and evaluate a language model."""
