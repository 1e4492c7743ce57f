"""The clock: durable timers. It has nothing to decide; a timer is an effect whose outcome comes when it is due."""
