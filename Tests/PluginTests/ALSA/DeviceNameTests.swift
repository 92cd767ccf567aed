// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import ALSASource

/// A chain file names a device, and nothing that alsa-lib could do besides.
@Suite struct DeviceNameTests {
    @Test(arguments: [
        "default", "hw:0", "hw:0,0", "plughw:CARD=PCH,DEV=0", "sysdefault:CARD=Loopback", "front:CARD=Generic_1,DEV=0",
        "mic", "mic_chain", "usb-mic.2", "pipewire",
    ]) func takesDevices(name: String) { #expect(DeviceName.isPlain(name)) }

    @Test(arguments: [
        "", ":", ":0", "tee:null,'|touch x',raw", "file:/tmp/x,raw", "tee:default,x,raw", "plug:hw", "hw:0,'x'",
        "hw:0 ",
        "hw:{ type hw }", "{ type file }", "mic:1", "hw:0\n", "a b", "null:'|x'", "plughw:0,|x", "hw:../x",
    ]) func refusesWhatCouldRunOrWrite(name: String) throws {
        #expect(!DeviceName.isPlain(name))
        let text = name.replacing("\n", with: "\\n")
        #expect {
            _ = try StageDriver(ALSASource.self, options: #"{ "device": "\#(text)", "ifMissing": "wait" }"#)
        } throws: { "\($0)".contains("must be a plain name, such as 'default', or a card's device") }
    }
}
