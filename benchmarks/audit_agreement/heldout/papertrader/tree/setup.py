from setuptools import find_packages, setup

setup(name="papertrader", version="0.0.3", packages=find_packages(), python_requires=">=3.10")
