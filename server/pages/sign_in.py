"""The page that asks for a token."""

from server.pages.layout import Visit, page
from server.pages.markup import NOTHING, tag


def sign_in_html(base_path: str, *, message: str, form_token: str, next_path: str) -> str:
    """A form that POSTs `token`, `form_token` and `next` to `{base_path}/sign-in`; `message`: why it is shown again."""
    form = tag(
        "form",
        tag("h1", "Sign in"),
        tag("p", "The token is in the configuration of the service; its operator gives it to you."),
        tag("div", tag("p", message), class_="notice bad", role="alert") if message else NOTHING,
        tag("input", type="hidden", name="form_token", value=form_token),
        tag("input", type="hidden", name="next", value=next_path),
        tag(
            "label",
            "Token",
            tag(
                "input",
                type="password",
                name="token",
                autocomplete="current-password",
                required=True,
                autofocus=True,
                spellcheck="false",
            ),
        ),
        tag("button", "Sign in"),
        class_="sign-in card",
        method="post",
        action=f"{base_path}/sign-in",
    )
    return page(Visit(base_path, None), "Sign in", form)
