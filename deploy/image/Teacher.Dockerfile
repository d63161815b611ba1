# The student image plus sources and grader: for the teacher's server and for Dask workers. Keep it in a private registry.
#   docker build -f deploy/image/Teacher.Dockerfile --build-arg BASE=token-journey -t token-journey-teacher .
ARG BASE=token-journey
FROM ${BASE}
USER root
COPY grading /srv/course/grading
COPY solutions /srv/course/solutions
COPY nbgrader_config.py /srv/course/
COPY deploy/jupyterhub/teacher /srv/nbgrader/teacher
USER jovyan
