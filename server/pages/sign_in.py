"""The page that asks for a token."""

from html import escape


def sign_in_html(base_path: str, *, message: str, form_token: str, next_path: str) -> str:
    """A form that POSTs `token`, `form_token` and `next` to `{base_path}/sign-in`; `message`: why it is shown again."""
    said = f"<p role=alert>{escape(message)}</p>" if message else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Sign in</title>"
        f"{said}<form method=post action='{escape(base_path)}/sign-in'>"
        f"<input type=hidden name=form_token value='{escape(form_token)}'>"
        f"<input type=hidden name=next value='{escape(next_path)}'>"
        "<label>Token <input type=password name=token autocomplete=current-password></label>"
        "<button>Sign in</button></form>"
    )
