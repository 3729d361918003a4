"""Why a connection is not to be had: the transport itself reports only that it is unavailable.

Not here: gRPC. What gRPC trusts, its own handshake decides; these are made beside it with the same files, to find
words for what went wrong, and to refuse a server whose certificate has no name but the common name.
"""

from __future__ import annotations

import socket
import ssl
from datetime import datetime

from tallyveil.errors import ConfigurationError, TallyveilError, UnavailableError
from tallyveil.identity import diagnose
from tallyveil_client.transport import credentials
from tallyveil_client.transport.endpoint import Endpoint, split_address

FIRST_WAIT_S = 2.0
LATER_WAIT_S = 5.0


def check_server(endpoint: Endpoint, now: datetime) -> None:
    """Make one handshake; a server that cannot be reached, or refuses us, is left to the first call.

    Raises:
        ConfigurationError: The server's certificate is not to be trusted.
    """
    wait_s = min(endpoint.timeout_s, FIRST_WAIT_S)
    try:
        with _dial(endpoint, wait_s) as plain, _shake(endpoint, credentials.tls_context(endpoint), plain):
            pass
    except ssl.SSLCertVerificationError as error:
        raise _wrong_server(endpoint, now, error.verify_message, "no call was made") from None
    except OSError:
        pass


def explain(endpoint: Endpoint, now: datetime, not_done: str) -> TallyveilError:
    """Why a call found the aggregator unavailable.

    Args:
        endpoint: Whom the call was made to.
        now: Aware; certificates are compared with it.
        not_done: For the message.

    Returns:
        ConfigurationError where a file, certificate or name is wrong, so that trying again changes nothing;
        UnavailableError otherwise.
    """
    try:
        # A server may stop just then: only one that hangs up twice after our certificate refuses it.
        if _is_accepted(endpoint) or _is_accepted(endpoint):
            return UnavailableError(
                f"{endpoint.address} is reachable and accepts our certificate, yet the call did not go through",
                not_done=not_done,
                next_step="try again; the aggregator may be starting or stopping",
            )
        return _refused(endpoint, now, "it hangs up on it", not_done)
    except ConfigurationError as error:
        return error
    except ssl.SSLCertVerificationError as error:
        return _wrong_server(endpoint, now, error.verify_message, not_done)
    except ssl.SSLEOFError:
        return _unreachable(endpoint, "it hung up during the handshake", not_done)
    except ssl.SSLError as error:
        reason = (error.reason or "no reason given").replace("_", " ").lower()
        if "alert" in reason:
            return _refused(endpoint, now, reason, not_done)
        return ConfigurationError(
            f"what answers at {endpoint.address} does not speak TLS as expected: {reason}",
            not_done=not_done,
            next_step="check the host and the port",
        )
    except OSError as error:
        return _unreachable(endpoint, _reason(error), not_done)


def _is_accepted(endpoint: Endpoint) -> bool:
    """Whether the server speaks after the handshake: with TLS 1.3 one that refuses us hangs up only then."""
    wait_s = min(endpoint.timeout_s, LATER_WAIT_S)
    with _dial(endpoint, wait_s) as plain, _shake(endpoint, credentials.tls_context(endpoint), plain) as tls:
        try:
            return tls.recv(1) != b""
        except ConnectionError:
            return False


def _wrong_server(endpoint: Endpoint, now: datetime, verdict: str, not_done: str) -> ConfigurationError:
    """We refused the server's certificate: read it, trusting nothing, and say what is wrong with it."""
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    name, found = endpoint.expected_name, [verdict]
    try:
        with _dial(endpoint, FIRST_WAIT_S) as plain, _shake(endpoint, unverified, plain) as tls:
            certificate = tls.getpeercert(binary_form=True) or b""
        found = diagnose(certificate, endpoint.ca.read_bytes(), now, dialled_host=name) or found
    except OSError:
        pass  # the verdict alone must do
    return ConfigurationError(
        f"the certificate of the server at {endpoint.address} is not to be trusted as {name}: {'; '.join(found)}",
        not_done=not_done,
        next_step=f"check the address and the CA file {endpoint.ca}; if they are right, tell the aggregator's operator",
    )


def _refused(endpoint: Endpoint, now: datetime, how: str, not_done: str) -> ConfigurationError:
    if found := credentials.faults(endpoint, now):
        return credentials.unusable(endpoint, found, not_done)
    return ConfigurationError(
        f"the server at {endpoint.address} refuses our certificate {endpoint.certificate}: {how}",
        not_done=not_done,
        next_step="check with the aggregator's operator that its CA issued this certificate and has not revoked it",
    )


def _unreachable(endpoint: Endpoint, why: str, not_done: str) -> UnavailableError:
    return UnavailableError(
        f"{endpoint.address} cannot be reached: {why}",
        not_done=not_done,
        next_step="try again later; check the address and the network, and that the aggregator runs",
    )


def _reason(error: OSError) -> str:
    match error:
        case socket.gaierror():
            return "its name cannot be resolved"
        case ConnectionRefusedError():
            return "nothing listens there"
        case TimeoutError():
            return "it does not answer in time"
        case ConnectionError():
            return "the connection was cut during the handshake"
        case _:
            return error.strerror or type(error).__name__


def _dial(endpoint: Endpoint, wait_s: float) -> socket.socket:
    return socket.create_connection(split_address(endpoint.address), timeout=wait_s)


def _shake(endpoint: Endpoint, context: ssl.SSLContext, plain: socket.socket) -> ssl.SSLSocket:
    return context.wrap_socket(plain, server_hostname=endpoint.expected_name)
