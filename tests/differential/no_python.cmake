# cmake -P no_python.cmake PYTHON: what a test that needs Python says where there is none.
message("skipped: there is no ${CMAKE_ARGV3} (make it with: python3 -m venv .venv && "
        ".venv/bin/pip install -r tests/requirements.txt)")
