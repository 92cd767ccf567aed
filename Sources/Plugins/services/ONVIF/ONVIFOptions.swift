// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Options of ``ONVIFService``.
struct ONVIFOptions: StageOptions {
    @Option(help: "Where to listen: an address of this machine and a port. Port 0 takes any free port.")
    var listen = "0.0.0.0:8000"

    @Option(help: "What people call the camera. Default: the name of the chain.")
    var name: String? = nil

    @Option(help: "Where the camera is. Recorders show it.")
    var location = ""

    @Option(
        help:
            "Lets everybody on the network use the device. It must be set if 'rtsp-sink' has no users, and only then."
    )
    var anybody = false

    @Option(
        help:
            "Whether recorders find the device by WS-Discovery (UDP port 3702). On loopback nobody can, and it is off."
    )
    var discovery = true

    @Option(
        help:
            "More names by which clients reach the device, such as \"door.local\". Needed only with 'anybody': IP addresses and localhost always work."
    )
    var hosts: [String] = []

    /// Bytes of a name or place, which discovery sends.
    static let longestText = 64

    func validate() throws {
        guard ListenAddress(listen) != nil else {
            throw OptionFault(
                "'listen' \"\(listen)\" must be an IP address or localhost, with a port from 0 to 65535",
                remedy: "Write \"0.0.0.0:8000\" or \"192.168.1.7:8000\".", options: ["listen"])
        }
        for (option, text) in [("name", name ?? "camera"), ("location", location)] {
            guard text.utf8.count <= Self.longestText, text.unicodeScalars.allSatisfy(UserLines.isPrintable),
                option == "location" || !text.isEmpty
            else {
                throw OptionFault(
                    "'\(option)' must be a text of at most \(Self.longestText) bytes without control characters",
                    remedy: "Write a shorter one, or leave it out.", options: [option])
            }
        }
        for host in hosts {
            guard let name = HostName(host), name.port == nil else {
                throw OptionFault(
                    "'hosts' has \(JSONNode(.string(host)).text()), which must be the name of a host, without a port",
                    remedy: "Write it like \"door.local\".", options: ["hosts"])
            }
        }
    }
}
