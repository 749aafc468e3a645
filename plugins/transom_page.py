"""The pages about streams in Airflow: in its navigation and on each DAG, with its login and permissions.

Airflow mounts the application of a plugin without its own login. So every route requires the user itself.
Only the API server makes the application: other processes load plugins, too.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/transom"


class TransomPage(AirflowPlugin):
    """The plugin."""

    name = "transom"
    external_views = [  # noqa: RUF012  (Airflow declares it so)
        {
            "name": "Transom",
            "href": f"{PREFIX[1:]}/",
            "destination": "nav",
            "url_route": "transom",
            "nav_top_level": True,
        },
        {
            "name": "Findings",
            "href": f"{PREFIX[1:]}/streams/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "findings",
        },
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The application, with the dependencies of Airflow's own routes."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.core_api.security import get_user, requires_access_dag

        from transom.web.app import Access, application

        def readable(user: Any, names: Collection[str]) -> set[str]:
            return get_auth_manager().get_authorized_dag_ids(user=user, method="GET") & {*names}

        app = application(Access(get_user, requires_access_dag("GET"), readable))
        return [{"app": app, "url_prefix": PREFIX, "name": "transom"}]
