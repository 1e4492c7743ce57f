from .judges import defense, prosecutor, tech_lead

__all__ = ["defense", "prosecutor", "tech_lead"]
