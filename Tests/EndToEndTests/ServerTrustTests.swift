// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// TLS and logins of `nats-events` and `mqtt-events`, with real servers.
@Suite(.serialized, .needs(.python), .needs(.openssl)) struct ServerTrustTests {
    private let workspace: Workspace

    init() throws {
        workspace = try Workspace()
        let script = Repository.root.appending(path: "Tests/Tools/nats-trust.py").path
        let made = try Tool.python.run(script, workspace.folder.path)
        guard made.status == 0 else { throw TestFault("nats-trust.py: \(made.error)") }
    }

    /// Runs a chain with this service until it has said something, and ends it.
    private func runs(_ service: String, until text: String) throws -> String {
        try workspace.write(
            "door.json",
            """
            {
              \(service),
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
        let host = try Program.framehost.start(
            ["door.json"], environment: ["XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": ""],
            folder: workspace.folder.path)
        try host.waitForError(text)
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
        return outcome.error
    }

    @Test(.needs(NATSCluster.server), .timeLimit(.minutes(10))) func natsTrustsACertificateAndIsTrustedByAKey() throws {
        let port = try RTSPStream.freePort()
        try workspace.write(
            "nats.conf",
            """
            listen: 127.0.0.1:\(port)
            jetstream { store_dir: "\(workspace.path("store"))" }
            tls { cert_file: "\(workspace.path("server.pem"))", key_file: "\(workspace.path("server.key"))" }
            include "operator.conf"
            """)
        let server = try NATSCluster.server.start(["-c", workspace.path("nats.conf")])
        defer { kill(server.pid, SIGKILL) }
        try server.waitForError("Server is ready")
        let address = "tls://127.0.0.1:\(port)"
        func chain(_ server: String, _ more: String) -> String { #""nats": { "servers": ["\#(server)"]\#(more) }"# }
        let (file, key) = (#", "caFile": "server.pem""#, #", "credentials": "user.creds""#)
        _ = try runs(chain(address, file + key), until: "Events go to the NATS server \(address).")
        // A server that asks for TLS gets it.
        let open = "nats://127.0.0.1:\(port)"
        _ = try runs(chain(open, #", "verify": false"# + key), until: "Events go to the NATS server \(open).")
        // An unknown certificate, another name, no key.
        let unknown = try runs(chain(address, key), until: "takes no events")
        #expect(unknown.contains("the TLS connection failed (self-signed certificate)"), "\(unknown)")
        let other = "tls://localhost:\(port)"
        let named = try runs(chain(other, file + key), until: "takes no events")
        #expect(named.contains("the TLS connection failed (the certificate names another host)"), "\(named)")
        let stranger = try runs(chain(address, file), until: "takes no events")
        #expect(stranger.contains("the server says 'Authorization Violation'"), "\(stranger)")
    }

    @Test(.needs(MQTTBroker.mosquitto), .timeLimit(.minutes(10))) func mqttTrustsACertificateAndHasALogin() throws {
        try workspace.write("users", "bob:secret\n")
        let hashed = try Tool(name: "mosquitto_passwd").run("-U", workspace.path("users"))
        #expect(hashed.status == 0, "\(hashed.error)")
        let broker = try MQTTBroker(
            workspace,
            more: """
                certfile \(workspace.path("server.pem"))
                keyfile \(workspace.path("server.key"))
                password_file \(workspace.path("users"))
                """)
        try broker.start()
        defer { try? broker.end() }
        try workspace.write("right", "bob:secret\n")
        try workspace.write("wrong", "bob:guess\n")
        let address = "mqtts://127.0.0.1:\(broker.port)"
        func chain(_ address: String, _ more: String) -> String { #""mqtt": { "broker": "\#(address)"\#(more) }"# }
        let (file, login) = (#", "caFile": "server.pem""#, #", "login": "right""#)
        _ = try runs(chain(address, file + login), until: "Events go to the MQTT server \(address).")
        _ = try runs(chain(address, #", "verify": false"# + login), until: "Events go to the MQTT server \(address).")
        let unknown = try runs(chain(address, login), until: "takes no events")
        #expect(unknown.contains("the TLS connection failed (self-signed certificate)"), "\(unknown)")
        let stranger = try runs(chain(address, file + #", "login": "wrong""#), until: "takes no events")
        #expect(stranger.contains("Connection Refused: not authorised"), "\(stranger)")
        // No TLS where the broker wants it.
        let bare = try runs(chain("mqtt://127.0.0.1:\(broker.port)", login), until: "takes no events")
        #expect(!bare.contains("secret"), "\(bare)")
    }
}
