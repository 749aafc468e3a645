"""The lake: tables, the ledger, pinned reads, publication, checks. Stages do not have to know how."""
