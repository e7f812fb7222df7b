"""The only room that knows files: Parquet tables, LanceDB, digests."""
