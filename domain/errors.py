"""The one tree of errors: each class owns its stable code, its exit status and its usual hint.

    KnowledgeError                          1  unexpected
    +-- UsageError                          2  usage
    |   +-- ConfigurationError              2  configuration
    |   +-- UntrustedConfigurationError     2  configuration_untrusted
    |   +-- DisabledError                   2  disabled
    |   +-- UnsafePlaceError                2  unsafe_place
    |   +-- QueryEmptyError                 2  query_empty
    |   +-- SemanticNotConfiguredError      2  semantic_not_configured
    +-- NotFoundError                       4  not_found
    |   +-- CitationMalformedError          4  citation_malformed
    +-- RefusedError                        4  refused
    +-- NotBuiltError                      10  index_not_built
    +-- CorpusEmptyError                   10  corpus_empty
    |   +-- IndexInconsistentError         10  index_inconsistent
    +-- LockedError                        11  locked
    +-- FormatError                        12  format_mismatch
    |   +-- BaseMismatchError              12  base_mismatch
    +-- IntegrityError                     13  integrity
    +-- StorageError                       14  storage
    |   +-- DiskFullError                  14  disk_full
    +-- EmbeddingsUnavailableError         15  embeddings_unavailable
    +-- EmbeddingsChangedError             15  embeddings_changed
    +-- QueueError                         16  queue_unreachable
    +-- InterruptedRunError               130  interrupted
    |   +-- CancelledRunError             130  cancelled

Statuses that are no errors of ours (3: finished, but files failed or removals are held; 5: doctor found
something fatal) are results and live with their verbs. The message says what happened with the value, the
hint says what to do.
"""

from typing import ClassVar


class KnowledgeError(Exception):
    """Something that the user is told in words; `code` is stable, `exit_status` follows the table above."""

    code: ClassVar[str] = "unexpected"
    exit_status: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(KnowledgeError):
    code = "usage"
    exit_status = 2
    http_status = 400


class ConfigurationError(UsageError):
    code = "configuration"


class UntrustedConfigurationError(ConfigurationError):
    code = "configuration_untrusted"


class DisabledError(ConfigurationError):
    code = "disabled"


class UnsafePlaceError(UsageError):
    code = "unsafe_place"


class QueryEmptyError(UsageError):
    code = "query_empty"


class SemanticNotConfiguredError(UsageError):
    """Meaning was asked for where no embeddings are configured (R6)."""

    code = "semantic_not_configured"


class NotFoundError(KnowledgeError):
    code = "not_found"
    exit_status = 4
    http_status = 404


class CitationMalformedError(NotFoundError):
    code = "citation_malformed"


class RefusedError(KnowledgeError):
    code = "refused"
    exit_status = 4
    http_status = 409


class NotBuiltError(KnowledgeError):
    code = "index_not_built"
    exit_status = 10
    http_status = 409


class CorpusEmptyError(KnowledgeError):
    """The index holds no document, and an answer for a machine would look like nothing found (S0-56)."""

    code = "corpus_empty"
    exit_status = 10
    http_status = 409


class IndexInconsistentError(CorpusEmptyError):
    """The index holds no document, while runs are on record that have filled it (S2-21)."""

    code = "index_inconsistent"


class LockedError(KnowledgeError):
    code = "locked"
    exit_status = 11
    http_status = 409


class FormatError(KnowledgeError):
    code = "format_mismatch"
    exit_status = 12
    is_upgradable = False  # an index of this base, older or of another shape: `knowledge upgrade` makes it anew


class BaseMismatchError(FormatError):
    code = "base_mismatch"


class IntegrityError(KnowledgeError):
    code = "integrity"
    exit_status = 13


class StorageError(KnowledgeError):
    code = "storage"
    exit_status = 14


class DiskFullError(StorageError):
    code = "disk_full"
    http_status = 507


class EmbeddingsUnavailableError(KnowledgeError):
    """The model's server cannot be reached, or refuses whatever it is sent."""

    code = "embeddings_unavailable"
    exit_status = 15
    http_status = 503


class EmbeddingsChangedError(KnowledgeError):
    """The vectors that are stored and what would be made now are not of one kind."""

    code = "embeddings_changed"
    exit_status = 15
    http_status = 409


class QueueError(KnowledgeError):
    code = "queue_unreachable"
    exit_status = 16
    http_status = 503


class InterruptedRunError(KnowledgeError):
    code = "interrupted"
    exit_status = 130


class CancelledRunError(InterruptedRunError):
    """Somebody has asked the run to end (`knowledge runs cancel`)."""

    code = "cancelled"
