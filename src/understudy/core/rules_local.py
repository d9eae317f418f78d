"""What happened on our side of the wire: exception texts of all kinds of clients, watchdogs."""

from __future__ import annotations

from understudy.core.faults import Fault
from understudy.core.rules import Rule, Sample

LEFT = (
    Rule(
        "our caller left",
        Fault.CLIENT_DISCONNECT,
        Sample(None, "handler: client disconnected, giving up", stream=True),
        says="""
            client disconnect | client closed | client connection closed | client has disconnected
            client gone | client left | clientdisconnect | context canceled | context cancelled
            cancellederror | canceled by the user | canceled by client | cancelled by client
            cancelled by the user | cancelled by user | canceled by user | user aborted
            aborted by user | aborted by the user | request was aborted | operation was aborted
            operation aborted
            request aborted | aborterror | downstream disconnect | caller went away
            generatorexit | cancelederror | err_canceled | closing transport | clientabort
            client prematurely | client reset | client has gone | client went away
            client aborted | client closing | disconnected from client | http.disconnect
            from the client side | user cancelled | user canceled | client closed the
            caller disconnected | operation was canceled
        """,
    ),
)

STALL = (
    Rule(
        "silence after content",
        Fault.STALL_MID_STREAM,
        Sample(None, "no chunk for 45s after first chunk (phase=mid_stream)", stream=True),
        says="""
            mid_stream | mid-stream | midstream | mid-response | mid-reply | mid-generation
            after first chunk | after first byte
            after first token | partial response | next event | next chunk
        """,
    ),
    Rule(
        "silence before content",
        Fault.STALL_PRE_FIRST_BYTE,
        Sample(None, "upstream stall (pre_first_byte) after 15s", stream=True),
        says="""
            stall | pre_first_byte | first byte | first token | first chunk | first content
            first event
            no content event | firstbytetimeout | time to first | ttft
            idle timeout waiting for sse | stream idle | no data received | no chunk | no event
            zero events
            no … activity | without activity | inactivity
        """,
    ),
)

SLOW = (
    Rule(
        "timed out while streaming",
        Fault.STALL_PRE_FIRST_BYTE,
        Sample(200, ": ping\n\n", error="event read timed out", stream=True),
        says="timed out | timeout | time out | deadline | idle | no progress",
    ),
)

TRANSPORT = (
    Rule(
        "connection broke",
        Fault.TRANSIENT,
        Sample(None, "read tcp 10.0.0.1: connection reset by peer"),
        says="""
            reset by peer | recv failure | network connection | unreachable | peer closed
            connection reset | connection refused | connection aborted | connection closed
            connection was closed | connection lost | connection error | connection failed
            connect error | connection attempts failed | cannot connect | can't connect
            could not connect | failed to connect | couldn't connect | unable to connect
            connecterror | connectionerror | connectexception | closed connection
            closed the connection | closed by the remote | remote end closed | disconnected
            disconnect/reset | broken pipe | econnreset | econnrefused | econnaborted | eproto
            epipe | enetunreach | enetreset | enetdown | ehostunreach | ehostdown | socket hang up
            socket closed | socketerror
            other side closed | und_err | fetch failed | failed to fetch | network error
            networkerror | network request failed | no route to host | net::err
            error sending request | stream ended | stream closed | stream was reset | stream error
            goaway | going away | rst_stream | http2 | http/2 | terminated | transport
            nsurlerror | to be offline | i/o error on | max retries exceeded
            connection could be made | failed to respond | closedresource | failed to reach
            network issue | network problem | decompress | interrupted system call
        """,
    ),
    Rule(
        "body broke off",
        Fault.TRANSIENT,
        Sample(None, "Post /v1/chat/completions: unexpected EOF"),
        says="""
            unexpected eof | : eof$ | ^eof$ | eoferror | eof occurred | eof while reading
            end of file | incompleteread | incomplete read | incomplete chunked
            incomplete message | incompletemessage | unexpected end of stream
            incomplete envelope | premature close | prematurely | remoteprotocolerror
            protocolerror | clientpayloaderror | payload is not completed | transferencoding
            content-length | chunkedencodingerror | invalid chunk | error decoding response body
            error reading a body | readerror | before completion | without sending | ended without
            no response received | received no bytes | empty reply from
        """,
    ),
    Rule(
        "name not resolved",
        Fault.TRANSIENT,
        Sample(None, "getaddrinfo ENOTFOUND api.example.com"),
        says="""
            getaddrinfo | enotfound | eai_again | name or service not known
            nodename nor servname | name resolution | name does not resolve | no such host
            could not resolve | unknownhost | dns lookup | dns error | dns resol | dns fail | (dns
            dns problem | no address associated
        """,
    ),
    Rule(
        "TLS failed",
        Fault.TRANSIENT,
        Sample(None, "tls: failed to verify certificate: x509: unknown authority"),
        says="""
            err_ssl | ssl_connect | ssl: | ssl error | sslerror | sslexception | sslhandshake
            ssl_error | sslv3 | tls: | tlsv1 | tls alert | x509 | certificate | handshake
            bad record mac | self signed | self-signed
        """,
    ),
    Rule(
        "timed out",
        Fault.TRANSIENT,
        Sample(None, "the call timed out"),
        says="""
            timed out | timedout | timeout | time out | deadline | did not respond
            no response from
        """,
    ),
)

CALLER_PIPE = (
    Rule(
        "pipe to our caller broke",
        Fault.CLIENT_DISCONNECT,
        Sample(None, "write: broken pipe", stream=True),
        says="broken pipe | epipe",
    ),
)

# Exceptions known by the name of their type; the core imports no client library.
TYPES = (
    Rule(
        "our own cancellation",
        Fault.TRANSIENT,
        Sample(error="CancelledError"),
        codes="CancelledError",
    ),
    Rule(
        "not an answer at all",
        Fault.TRANSIENT,
        Sample(error="Garbled"),
        codes="Garbled Truncated",
    ),
    Rule(
        "connection-level exception",
        Fault.TRANSIENT,
        Sample(error="RemoteProtocolError"),
        codes="""
            TimeoutError ConnectionError OSError EOFError IncompleteReadError IncompleteRead
            ReadError WriteError ConnectError CloseError NetworkError TransportError ProtocolError
            RemoteProtocolError LocalProtocolError ProxyError ReadTimeout WriteTimeout
            ConnectTimeout PoolTimeout APITimeoutError APIConnectionError ServerDisconnectedError
            ServerTimeoutError ClientPayloadError ClientConnectionError ClientConnectorError
            ClientOSError ClosedResourceError BrokenResourceError EndOfStream ChunkedEncodingError
            EndpointConnectionError ConnectionClosed
        """,
    ),
)
