"""The chief justice: from opinions and evidence to one ruling a criterion, by rules alone; pure."""
