// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Options of ``ControlServer``.
struct ControlServerOptions: StageOptions {
    @Option(
        help:
            "Where to listen: an address of this machine and a port. Port 0 takes any free port. Every address except loopback needs a token or users."
    )
    var listen = "127.0.0.1:8080"

    @Option(help: "The bearer token that clients must send. \"${NAME}\" takes it from the environment.")
    var token: String? = nil

    @Option(help: "A file with the token in its first line, in place of 'token'.")
    var tokenFile: String? = nil

    @Option(help: "Whether the token may see what stages with privacy cover. Users may by the right \"originals\".")
    var tokenSeesOriginals = false

    @Option(
        help:
            "People who may use the server: a file with a line name:rights:password for each, or env:NAME for an environment variable with such lines. Rights are \"watch\", \"watch,control\", and either with \",originals\"."
    )
    var users: String? = nil

    @Option(help: "A PEM file with the certificate chain. With it the port accepts only HTTPS.")
    var certificate: String? = nil

    @Option(help: "A PEM file with the certificate's private key.")
    var key: String? = nil

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
        if !address.isLoopback, token == nil, tokenFile == nil, users == nil {
            throw OptionFault(
                "'listen' \"\(listen)\" can be reached from other machines, so it needs a token or users",
                remedy: "Set \"token\": \"${FRAMEHOST_TOKEN}\", 'tokenFile' or 'users', or listen on 127.0.0.1.",
                options: ["listen"])
        }
        if tokenSeesOriginals, token == nil, tokenFile == nil {
            throw OptionFault(
                "'tokenSeesOriginals' needs a token",
                remedy:
                    "Set 'token' or 'tokenFile', or leave it out: users have the right \"originals\" by their line.",
                options: ["tokenSeesOriginals"])
        }
        try validateFiles()
        for host in hosts where HostName(host) == nil {
            throw OptionFault(
                "'hosts' has \"\(host)\", which must be a host name or an IP address (IPv6 in brackets), with or without a port from 1 to 65535",
                remedy: "Write it like \"studio.local\", \"cam.example:443\" or \"[fd00::12]\".", options: ["hosts"])
        }
    }

    private func validateFiles() throws {
        if users == "" {
            throw OptionFault(
                "'users' is empty", remedy: "Name a file or env:NAME, or leave 'users' out.", options: ["users"])
        }
        if (certificate == nil) != (key == nil) {
            throw OptionFault(
                "'certificate' and 'key' must be set together", remedy: "Set both for HTTPS, or neither.",
                options: [certificate != nil ? "certificate" : "key"])
        }
    }
}
