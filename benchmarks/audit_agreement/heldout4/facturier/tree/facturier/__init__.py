"""Invoices of suppliers."""
