"""The resources, one file each."""

from service.api.routes import catalogue, estimates, health, plans

ROUTERS = (plans.router, estimates.router, catalogue.router, health.router)
