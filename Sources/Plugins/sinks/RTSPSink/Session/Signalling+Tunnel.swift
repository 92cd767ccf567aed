// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// RTSP through HTTP, for networks that let nothing else out (Apple, "Tunnelling RTSP and RTP over HTTP").
///
/// A client has two connections with the same `x-sessioncookie`. What the server sends, packets included, goes out on
/// the connection of the GET. What the client sends comes in on that of the POST, in Base64. For everything else the
/// GET's connection stands for the client: its requests, sessions, limits and timeouts.
extension Signalling {
    /// The role of a connection in a tunnel.
    enum Tunnel: Sendable, Equatable {
        case output(cookie: String, input: ConnectionID?)
        case input(of: ConnectionID)
    }

    private static let mediaType = "application/x-rtsp-tunnelled"

    mutating func tunnel(_ inquiry: Inquiry) -> [SignallingAction] {
        let id = inquiry.connectionID
        guard let asked = inquiry.values.tunnel, inquiry.connection.tunnel == nil else {
            // A browser, or a tunnel within a tunnel.
            return refuseHTTP(.methodNotAllowed, id, "it sent HTTP")
        }
        guard asked.isInput else {
            guard tunnels[asked.cookie] == nil else {
                return refuseHTTP(.badRequest, id, "its tunnel's cookie belongs to another client")
            }
            tunnels[asked.cookie] = id
            update(id) { $0.tunnel = .output(cookie: asked.cookie, input: nil) }
            var response = RTSPResponse(
                .ok,
                headers: HeaderFields([
                    ("Server", "framehost"), ("Connection", "close"), ("Cache-Control", "no-store"),
                    ("Pragma", "no-cache"),
                    ("Content-Type", Self.mediaType),
                ]))
            response.version = "HTTP/1.0"
            return [.openTunnel(response)]
        }
        // The cookie alone proves nothing: someone who has read it on the way has another address.
        guard let output = tunnels[asked.cookie], let other = connections[output],
            other.peer == inquiry.connection.peer,
            case .output(let cookie, let old) = other.tunnel
        else { return refuseHTTP(.badRequest, id, "its tunnel has no other end") }
        update(output) {
            $0.tunnel = .output(cookie: cookie, input: id)
            $0.lastRequest = inquiry.now
        }
        update(id) { $0.tunnel = .input(of: output) }
        // QuickTime may end its POST and begin another at any time.
        return [.joinTunnel(output)] + (old.map { [.close($0, "its tunnel has a new input connection")] } ?? [])
    }

    private func refuseHTTP(_ status: RTSPStatus, _ id: ConnectionID, _ reason: String) -> [SignallingAction] {
        var response = RTSPResponse(status, headers: HeaderFields([("Server", "framehost"), ("Connection", "close")]))
        response.version = "HTTP/1.1"
        return [.respond(response), .close(id, reason)]
    }

    /// A connection was closed: closes the other connection of its tunnel too. Where the POST was closed, the client
    /// may begin another, and its session goes on.
    mutating func closeTunnel(_ tunnel: Tunnel?, of id: ConnectionID) -> [SignallingAction] {
        switch tunnel {
        case .output(let cookie, let input):
            tunnels[cookie] = nil
            return input.map { [.close($0, "its tunnel is closed")] } ?? []
        case .input(let output):
            if case .output(let cookie, id) = connections[output]?.tunnel {
                update(output) { $0.tunnel = .output(cookie: cookie, input: nil) }
            }
            return []
        case nil: return []
        }
    }
}
