"""CTranslate2 as an engine: conversion of a model, comparison with our own search, and a cache of engines."""
