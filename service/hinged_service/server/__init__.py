"""The HTTP server: uvicorn's protocol with bounds, graceful shutdown, memory."""
