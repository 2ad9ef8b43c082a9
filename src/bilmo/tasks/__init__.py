"""Tasks on top of the layers: classify and tag, with one way in for all of them."""
