"""`python -m bridge.runner.check`: can a runner start here? Asked by bots, which never import flower themselves."""

from __future__ import annotations

import sys


def main() -> int:
    """Print one line per problem and return 1, or return 0 in silence."""
    try:
        import flower.core.env as env
    except ImportError as err:
        print(f"flower cannot be imported: {err}; install it with: pip install 'flower[chat,slack]'")  # noqa: T201
        return 1
    try:
        env.load_dotenv()
    except ValueError as err:  # a named file that cannot be read
        print(err)  # noqa: T201
        return 1
    if env.check_credentials() is not None:
        print(  # noqa: T201
            "no model credential: neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set. "
            f"Export one of them, or write it into {env.user_env_path()}"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
