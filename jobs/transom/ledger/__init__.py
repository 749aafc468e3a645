"""What each stage has done to each hour: states, claims, staleness."""
