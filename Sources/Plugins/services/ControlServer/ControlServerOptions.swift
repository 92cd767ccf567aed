// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``ControlServer``.
struct ControlServerOptions: StageOptions {
    @Option(
        help:
            "Where to listen: an address of this machine and a port. Port 0 takes any free port. Every address except loopback needs a token."
    )
    var listen = "127.0.0.1:8080"

    @Option(help: "The bearer token that clients must send. \"${NAME}\" takes it from the environment.")
    var token: String? = nil

    @Option(help: "A file with the token in its first line, in place of 'token'.")
    var tokenFile: String? = nil

    @Option(
        help: "More names by which clients reach the server, such as \"studio.local\" or \"cam.example:443\".")
    var hosts: [String] = []

    func validate() throws {
        guard let address = ListenAddress(listen) else {
            throw OptionFault(
                "'listen' \"\(listen)\" must be an IP address or localhost, with a port from 0 to 65535",
                remedy: "Write \"127.0.0.1:8080\" or \"[::1]:8080\". Port 0 takes any free port.", options: ["listen"])
        }
        if token != nil, tokenFile != nil {
            throw OptionFault(
                "'token' and 'tokenFile' cannot be used together", remedy: "Leave one of them out.",
                options: ["token", "tokenFile"])
        }
        // No message shows the token's text.
        if let token, AccessToken(token) == nil {
            throw OptionFault("'token' must be \(AccessToken.rule)", remedy: AccessToken.remedy, options: ["token"])
        }
        if tokenFile == "" {
            throw OptionFault(
                "'tokenFile' is empty", remedy: "Name a file with the token in its first line.", options: ["tokenFile"])
        }
        if !address.isLoopback, token == nil, tokenFile == nil {
            throw OptionFault(
                "'listen' \"\(listen)\" can be reached from other machines, so it needs a token",
                remedy: "Set \"token\": \"${FRAMEHOST_TOKEN}\" or 'tokenFile', or listen on 127.0.0.1.",
                options: ["listen"])
        }
        for host in hosts where HostName(host) == nil {
            throw OptionFault(
                "'hosts' has \"\(host)\", which must be a host name or an IP address (IPv6 in brackets), with or without a port from 1 to 65535",
                remedy: "Write it like \"studio.local\", \"cam.example:443\" or \"[fd00::12]\".", options: ["hosts"])
        }
    }
}
