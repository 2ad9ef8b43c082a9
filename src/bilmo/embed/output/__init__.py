"""Files of vectors: HDF5, NumPy, Parquet, JSON lines."""
