"""From a wish to a booked rail journey."""
