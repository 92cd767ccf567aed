// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore
@testable import ONVIF

@Suite(.serialized) struct ONVIFServiceTests {
    private static func options(_ change: (inout ONVIFOptions) -> Void = { _ in }) -> ONVIFOptions {
        var options = ONVIFOptions()
        options.listen = "127.0.0.1:0"
        change(&options)
        return options
    }

    private func fault(_ run: FakeChain, _ options: ONVIFOptions) -> String? {
        let service = ONVIFService(options: options)
        do {
            try service.start(run)
            service.stop(within: 500)
            return nil
        } catch { return "\(error)" }
    }

    private static func chain(_ sinks: String) -> FakeChain {
        let run = FakeChain()
        run.state.withLock { $0.chain = FakeChain.node(#"{"stages":[\#(sinks)]}"#) }
        return run
    }

    @Test func refusesAChainWithoutUsersUnlessAnybodyMay() throws {
        let open = Self.chain(#"{"use":"rtsp-sink","id":"sub"},{"use":"rtsp-sink","id":"main"}"#)
        let text = try #require(fault(open, Self.options()))
        #expect(text.contains("has no users, so everybody on the network could use the ONVIF device"))
        #expect(fault(open, Self.options { $0.anybody = true }) == nil)
        // On loopback nobody else is there.
        let said = open.state.withLock { $0.posted.first } ?? ""
        #expect(said.contains("The ONVIF device is at http://127.0.0.1:") && said.hasSuffix("/."), "\(said)")
    }

    @Test func refusesAnybodyWhereThereAreUsersAndListsThatDiffer() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "onvif-\(UInt64.random(in: .min ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try "anna:secret\n".write(to: folder.appendingPathComponent("people"), atomically: true, encoding: .utf8)
        let run = FakeChain(folder: folder.path)
        #expect(fault(run, Self.options()) == nil)
        #expect(fault(run, Self.options { $0.anybody = true })?.contains("'anybody' would show everybody") == true)
        let different = Self.chain(
            #"{"use":"rtsp-sink","id":"sub","users":"people"},{"use":"rtsp-sink","id":"main","users":"others"}"#)
        #expect(fault(different, Self.options())?.contains("different 'users'") == true)
        let half = Self.chain(#"{"use":"rtsp-sink","id":"sub","users":"people"},{"use":"rtsp-sink","id":"main"}"#)
        #expect(fault(half, Self.options { $0.anybody = true })?.contains("different 'users'") == true)
        let fenced = Self.chain(
            #"{"use":"rtsp-sink","id":"sub","allow":["10.0.0.0/8"]},{"use":"rtsp-sink","id":"main"}"#)
        #expect(fault(fenced, Self.options { $0.anybody = true })?.contains("different 'allow'") == true)
        let hidden = Self.chain(
            #"{"use":"rtsp-sink","id":"sub","users":"${X}"},{"use":"rtsp-sink","id":"main","users":"${X}"}"#)
        #expect(fault(hidden, Self.options())?.contains("has a variable in it") == true)
        #expect(run.state.withLock { $0.posted.joined() }.contains("secret") == false)
    }

    @Test(arguments: [
        ("listen", #"{"listen":"here"}"#), ("name", #"{"name":""}"#), ("location", #"{"location":"a\u0001b"}"#),
        ("hosts", #"{"hosts":["a b"]}"#),
    ]) func checksItsOptions(option: String, text: String) throws {
        let members = FakeChain.node(text).asObject ?? []
        #expect(throws: (any Error).self) {
            _ = try OptionDecoder.decode(ONVIFOptions.self, from: members, isService: true) { name, _ in
                FaultPlace(name)
            }
        }
    }
}
