// SPDX-License-Identifier: Apache-2.0

import Testing

/// What `run` would refuse of an RTSP sink, `check` finds.
@Suite struct RTSPCheckTests {
    private func check(_ sinks: String...) throws -> Outcome {
        let workspace = try Workspace()
        let stages = sinks.enumerated().map { number, sink in
            """
            { "id": "camera\(number)", "use": "test-source", "size": "64x64", "live": true },
            { "id": "h264n\(number)", "use": "x264-encoder" },
            { "id": "live\(number)", "use": "rtsp-sink", \(sink) }
            """
        }
        try workspace.write("chain.json", #"{ "stages": [ \#(stages.joined(separator: ",\n")) ] }"#)
        return try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
    }

    @Test func findsTwoStreamsOfOnePortAndPath() throws {
        let outcome = try check(#""port": 8554, "path": "/a""#, #""port": 8554, "path": "/a""#)
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains(
                "'live1' serves port 8554, path '/a', as does 'live0'. Give each stage a 'path' or 'port' of its own."),
            "\(outcome.error)")
        // At the option, which stands on the sixth line.
        #expect(outcome.error.hasPrefix("chain.json:6:"), "\(outcome.error)")
        #expect(try check(#""port": 8554, "path": "/a""#, #""port": 8554, "path": "/b""#).status == 0)
        #expect(try check(#""port": 8554, "path": "/a""#, #""port": 8555, "path": "/a""#).status == 0)
    }

    @Test func findsOnePortWithTwoSettings() throws {
        let outcome = try check(#""port": 8554, "path": "/a""#, #""port": 8554, "path": "/b", "sessionSeconds": 30"#)
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains("'live1' serves port 8554 with other settings than 'live0'. Give both"),
            "\(outcome.error)")
    }

    @Test func findsFilesThatAreMissing() throws {
        let users = try check(#""users": "nobody.txt""#)
        #expect(users.status == 2)
        #expect(
            users.error.contains(
                "'users' must name a file or an environment variable, and there is no such file. Write"),
            "\(users.error)")
        let variable = try check(#""users": "env:RTSP_NOBODY""#)
        #expect(variable.status == 2)
        #expect(variable.error.contains("the environment variable 'RTSP_NOBODY' is not set"), "\(variable.error)")
        let certificate = try check(#""certificate": "cert.pem", "key": "key.pem""#)
        #expect(certificate.status == 2)
        #expect(
            certificate.error.contains("stages[2].certificate: the file 'cert.pem' does not exist."),
            "\(certificate.error)")
    }
}
