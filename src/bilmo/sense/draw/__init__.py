"""Pictures of similarities and of uses: SVG, pages for a browser, PNG."""
