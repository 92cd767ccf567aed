// SPDX-License-Identifier: Apache-2.0

/// The targets of the RTSP sink's parsers. They are one program, built once, which has a name for each of them.
private let fuzz: @Sendable (UnsafePointer<UInt8>?, Int) -> CInt = {
    let path = CommandLine.arguments[0]
    switch path.split(separator: "/").last {
    case "rtsp-wire": return fuzzRTSPWire
    case "rtsp-tunnel": return fuzzRTSPTunnel
    case "rtsp-dialogue": return fuzzRTSPDialogue
    case "rtsp-headers": return fuzzRTSPHeaders
    case "rtcp": return fuzzRTCP
    default: fatalError("no target of the RTSP sink is called \(path)")
    }
}()

@c(LLVMFuzzerTestOneInput)
public func fuzzRTSP(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(bytes, count) }
