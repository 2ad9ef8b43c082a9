"""What a training run would take on other machines."""
