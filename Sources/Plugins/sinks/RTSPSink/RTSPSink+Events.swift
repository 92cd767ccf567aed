// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension RTSPSink {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "serving", "The stream is ready for readers.",
            [
                .list("urls", "Addresses of the stream."),
                .number("port", "Its port."),
                .string("path", "Its path."),
            ]),
        EventDeclaration(
            "client-joined", "A reader has joined.",
            [
                .string("path", "The stream."),
                .string("address", "Its address."),
                .string("transport", "Transport of its packets."),
                .string("user", "User name, if it has logged in."),
            ]),
        EventDeclaration(
            "client-left", "A reader has left.",
            [
                .string("path", "The stream."),
                .string("why", "Why.", words: ["teardown", "closed", "timeout", "replaced", "stuck", "streamEnded"]),
                .number("seconds", "How long it played (s)."),
                .string("address", "Its address."),
                .string("transport", "Transport of its packets."),
                .number("queueMs", "How far it was behind (ms)."),
                .number("droppedUnits", "Pictures that were dropped for it."),
                .number("refusedPackets", "Packets that the operating system refused to send."),
                .number("packetsLost", "Packets that it reported as lost."),
                .number("lossPercent", "Share of packets that it lost in the last report interval (%)."),
                .object("sound", "If it has set up sound, the same for that: droppedUnits, packetsLost, lossPercent."),
                .string("user", "User name, if it has logged in."),
            ]),
        EventDeclaration(
            "connections-refused", "Connections were refused because of a limit.",
            [
                .number("connections", "How many."),
                .string("why", "Reason for the last one."),
            ]),
        EventDeclaration(
            "login-failed", "Clients gave wrong names or passwords.",
            [
                .string("path", "The stream."),
                .number("failures", "How many since the last event of this name."),
                .number("failuresInAll", "How many in total."),
                .string("address", "The client's address, if there was only one."),
            ]),
        EventDeclaration(
            "address-refused", "Clients with addresses that 'allow' excludes tried to play.",
            [
                .string("path", "The stream."),
                .number("failures", "How many since the last event of this name."),
                .number("failuresInAll", "How many in total."),
                .string("address", "The client's address, if there was only one."),
            ]),
        EventDeclaration(
            "group-too-large", "The keyframes are too far apart to keep everything since the last one for new readers.",
            [
                .string("path", "The stream."),
                .string("bound", "Which limit.", words: ["seconds", "bytes", "units"]),
            ]),
        EventDeclaration(
            "readers", "Answers the command 'readers'.",
            [
                .string("path", "The stream."),
                .list("readers", "The readers."),
                .number("refusedConnections", "How many so far."),
                .number("failedLogins", "How many so far."),
                .object("keptGroup", "What has been kept since the last keyframe."),
            ]),
    ]
}
