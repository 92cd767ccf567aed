// SPDX-License-Identifier: Apache-2.0

/// The device management service, as far as a camera that is set by its chain file has it.
enum DeviceService {
    /// Operations that need no login (ONVIF's core specification, 5.9.2, class PRE_AUTH).
    static let open: Set<String> = [
        "GetSystemDateAndTime", "GetServices", "GetServiceCapabilities", "GetCapabilities", "GetHostname",
        "GetEndpointReference", "GetWsdlUrl",
    ]

    static let operations: [String: Operation] = [
        "GetSystemDateAndTime": { call throws(SOAPFault) in dateAndTime(call) },
        "GetServices": { call throws(SOAPFault) in services(call) },
        "GetServiceCapabilities": { call throws(SOAPFault) in
            XMLNode("tds:GetServiceCapabilitiesResponse", [], [capabilities])
        },
        "GetCapabilities": { call throws(SOAPFault) in oldCapabilities(call) },
        "GetDeviceInformation": { call throws(SOAPFault) in information(call) },
        "GetHostname": { call throws(SOAPFault) in
            XMLNode(
                "tds:GetHostnameResponse", [],
                [
                    XMLNode(
                        "tds:HostnameInformation", [],
                        [XMLNode("tt:FromDHCP", false), XMLNode("tt:Name", hostName(call.facts.identity))])
                ])
        },
        "GetEndpointReference": { call throws(SOAPFault) in
            XMLNode(
                "tds:GetEndpointReferenceResponse", [],
                [XMLNode("tds:GUID", "urn:uuid:\(call.facts.identity.uuid)")])
        },
        "GetWsdlUrl": { call throws(SOAPFault) in
            XMLNode("tds:GetWsdlUrlResponse", [], [XMLNode("tds:WsdlUrl", "https://www.onvif.org/profiles/")])
        },
        "GetScopes": { call throws(SOAPFault) in
            XMLNode(
                "tds:GetScopesResponse", [],
                call.facts.scopes.map { scope in
                    XMLNode("tds:Scopes", [], [XMLNode("tt:ScopeDef", "Fixed"), XMLNode("tt:ScopeItem", scope)])
                })
        },
        "GetDiscoveryMode": { call throws(SOAPFault) in
            XMLNode(
                "tds:GetDiscoveryModeResponse", [],
                [XMLNode("tds:DiscoveryMode", call.facts.isDiscoverable ? "Discoverable" : "NonDiscoverable")])
        },
        "GetNetworkInterfaces": { call throws(SOAPFault) in networkInterfaces(call) },
        "GetNetworkProtocols": { call throws(SOAPFault) in networkProtocols(call) },
        "GetNetworkDefaultGateway": { call throws(SOAPFault) in
            XMLNode("tds:GetNetworkDefaultGatewayResponse", [], [XMLNode("tds:NetworkGateway")])
        },
        "GetDNS": { call throws(SOAPFault) in
            XMLNode("tds:GetDNSResponse", [], [XMLNode("tds:DNSInformation", [], [XMLNode("tt:FromDHCP", false)])])
        },
        "GetNTP": { call throws(SOAPFault) in
            XMLNode("tds:GetNTPResponse", [], [XMLNode("tds:NTPInformation", [], [XMLNode("tt:FromDHCP", false)])])
        },
        "GetUsers": { call throws(SOAPFault) in XMLNode("tds:GetUsersResponse") },
        "GetRelayOutputs": { call throws(SOAPFault) in XMLNode("tds:GetRelayOutputsResponse") },
    ]

    /// A name for GetHostname, which needs no login: made of what discovery tells anyway. The machine's own name is
    /// nobody's business, and a viewer needs it as little as a stranger.
    private static func hostName(_ identity: DeviceIdentity) -> String { "framehost-\(identity.uuid.prefix(8))" }

    private static func dateAndTime(_ call: Call) -> XMLNode {
        let civil = XMLTime.civil(call.wall)
        func moment(_ name: String) -> XMLNode {
            XMLNode(
                name, [],
                [
                    XMLNode(
                        "tt:Time", [],
                        [
                            XMLNode("tt:Hour", civil.hour), XMLNode("tt:Minute", civil.minute),
                            XMLNode("tt:Second", civil.second),
                        ]),
                    XMLNode(
                        "tt:Date", [],
                        [
                            XMLNode("tt:Year", civil.year), XMLNode("tt:Month", civil.month),
                            XMLNode("tt:Day", civil.day),
                        ]),
                ])
        }
        return XMLNode(
            "tds:GetSystemDateAndTimeResponse", [],
            [
                XMLNode(
                    "tds:SystemDateAndTime", [],
                    [
                        XMLNode("tt:DateTimeType", "NTP"), XMLNode("tt:DaylightSavings", false),
                        XMLNode("tt:TimeZone", [], [XMLNode("tt:TZ", "UTC0")]), moment("tt:UTCDateTime"),
                        moment("tt:LocalDateTime"),
                    ])
            ])
    }

    private static func services(_ call: Call) -> XMLNode {
        let areAsked = ["true", "1"].contains(call.token("IncludeCapability"))
        let all: [(space: String, path: String, version: (Int, Int), capabilities: XMLNode)] = [
            (Namespaces.device, ServicePath.device, (21, 12), capabilities),
            (Namespaces.media, ServicePath.media, (21, 12), MediaService.capabilities),
            (Namespaces.media2, ServicePath.media2, (21, 12), Media2Service.capabilities),
            (Namespaces.events, ServicePath.events, (21, 12), EventService.capabilities),
        ]
        return XMLNode(
            "tds:GetServicesResponse", [],
            all.map { service in
                XMLNode(
                    "tds:Service", [],
                    [XMLNode("tds:Namespace", service.space), XMLNode("tds:XAddr", call.base + service.path)]
                        + (areAsked ? [XMLNode("tds:Capabilities", [], [service.capabilities])] : []) + [
                            XMLNode(
                                "tds:Version", [],
                                [XMLNode("tt:Major", service.version.0), XMLNode("tt:Minor", service.version.1)])
                        ])
            })
    }

    static let capabilities = XMLNode(
        "tds:Capabilities", [],
        [
            XMLNode(
                "tds:Network",
                [
                    ("IPFilter", "false"), ("ZeroConfiguration", "false"), ("IPVersion6", "false"),
                    ("DynDNS", "false"), ("Dot11Configuration", "false"), ("Dot1XConfigurations", "0"),
                    ("HostnameFromDHCP", "false"), ("NTP", "0"), ("DHCPv6", "false"),
                ]),
            XMLNode(
                "tds:Security",
                [
                    ("TLS1.0", "false"), ("TLS1.1", "false"), ("TLS1.2", "false"), ("OnboardKeyGeneration", "false"),
                    ("AccessPolicyConfig", "false"), ("DefaultAccessPolicy", "false"), ("Dot1X", "false"),
                    ("RemoteUserHandling", "false"), ("X.509Token", "false"), ("SAMLToken", "false"),
                    ("KerberosToken", "false"), ("UsernameToken", "true"), ("HttpDigest", "true"),
                    ("RELToken", "false"), ("MaxUsers", "0"),
                ]),
            XMLNode(
                "tds:System",
                [
                    ("DiscoveryResolve", "true"), ("DiscoveryBye", "true"), ("RemoteDiscovery", "false"),
                    ("SystemBackup", "false"), ("SystemLogging", "false"), ("FirmwareUpgrade", "false"),
                    ("HttpFirmwareUpgrade", "false"), ("HttpSystemBackup", "false"), ("HttpSystemLogging", "false"),
                    ("HttpSupportInformation", "false"),
                ]),
        ])

    /// The older list, which UniFi Protect and Synology read.
    private static func oldCapabilities(_ call: Call) -> XMLNode {
        func flags(_ name: String, _ members: [String]) -> XMLNode {
            XMLNode(name, [], members.map { XMLNode("tt:\($0)", false) })
        }
        let device = XMLNode(
            "tt:Device", [],
            [
                XMLNode("tt:XAddr", call.base + ServicePath.device),
                flags("tt:Network", ["IPFilter", "ZeroConfiguration", "IPVersion6", "DynDNS"]),
                XMLNode(
                    "tt:System", [],
                    [
                        XMLNode("tt:DiscoveryResolve", true), XMLNode("tt:DiscoveryBye", true),
                        XMLNode("tt:RemoteDiscovery", false), XMLNode("tt:SystemBackup", false),
                        XMLNode("tt:SystemLogging", false), XMLNode("tt:FirmwareUpgrade", false),
                        XMLNode("tt:SupportedVersions", [], [XMLNode("tt:Major", 21), XMLNode("tt:Minor", 12)]),
                    ]),
                XMLNode("tt:IO", [], [XMLNode("tt:InputConnectors", 0), XMLNode("tt:RelayOutputs", 0)]),
                flags(
                    "tt:Security",
                    [
                        "TLS1.1", "TLS1.2", "OnboardKeyGeneration", "AccessPolicyConfig", "X.509Token", "SAMLToken",
                        "KerberosToken", "RELToken",
                    ]),
            ])
        let events = XMLNode(
            "tt:Events", [],
            [
                XMLNode("tt:XAddr", call.base + ServicePath.events),
                XMLNode("tt:WSSubscriptionPolicySupport", false), XMLNode("tt:WSPullPointSupport", true),
                XMLNode("tt:WSPausableSubscriptionManagerInterfaceSupport", false),
            ])
        let media = XMLNode(
            "tt:Media", [],
            [
                XMLNode("tt:XAddr", call.base + ServicePath.media),
                XMLNode(
                    "tt:StreamingCapabilities", [],
                    [
                        XMLNode("tt:RTPMulticast", false), XMLNode("tt:RTP_TCP", true),
                        XMLNode("tt:RTP_RTSP_TCP", true),
                    ]),
                XMLNode(
                    "tt:Extension", [],
                    [
                        XMLNode(
                            "tt:ProfileCapabilities", [],
                            [XMLNode("tt:MaximumNumberOfProfiles", DeviceFacts.mostStreams + MadeProfiles.most)])
                    ]),
            ])
        let asked = Set(call.body.children.filter { $0.name == "Category" }.map(\.value))
        let all = [("Device", device), ("Events", events), ("Media", media)]
        return XMLNode(
            "tds:GetCapabilitiesResponse", [],
            [
                XMLNode(
                    "tds:Capabilities", [],
                    all.filter { asked.isEmpty || asked.contains("All") || asked.contains($0.0) }.map(\.1))
            ])
    }

    /// That of `framehost --version`, which a plugin is not told; the tests with real clients compare the two.
    private static let version = "0.1.0"

    private static func information(_ call: Call) -> XMLNode {
        XMLNode(
            "tds:GetDeviceInformationResponse", [],
            [
                XMLNode("tds:Manufacturer", "framehost"), XMLNode("tds:Model", call.facts.name),
                XMLNode("tds:FirmwareVersion", Self.version), XMLNode("tds:SerialNumber", call.facts.identity.uuid),
                XMLNode("tds:HardwareId", "framehost"),
            ])
    }

    private static func networkInterfaces(_ call: Call) -> XMLNode {
        // The one that this client uses, with the device's own hardware address (docs/design/049-onvif.md).
        let address = MachineAddress.used(by: call.localHost, of: MachineAddress.all())
        // A machine that has only loopback.
        let name = address?.interface ?? "network"
        let children = [
            XMLNode("tt:Enabled", true),
            XMLNode(
                "tt:Info", [],
                [
                    XMLNode("tt:Name", name), XMLNode("tt:HwAddress", call.facts.identity.hardwareAddress),
                    XMLNode("tt:MTU", 1500),
                ]),
        ]
        return XMLNode(
            "tds:GetNetworkInterfacesResponse", [],
            [
                XMLNode(
                    "tds:NetworkInterfaces", [("token", name)], children + (address.map { [configuration($0)] } ?? []))
            ])
    }

    /// The order of its elements differs between the versions (ONVIF's schema, IPv4Configuration, IPv6Configuration).
    private static func configuration(_ address: MachineAddress) -> XMLNode {
        let manual = XMLNode(
            "tt:Manual", [],
            [XMLNode("tt:Address", address.text), XMLNode("tt:PrefixLength", address.prefixLength)])
        let members =
            address.isIPv6 ? [XMLNode("tt:DHCP", "Off"), manual] : [manual, XMLNode("tt:DHCP", false)]
        return XMLNode(
            address.isIPv6 ? "tt:IPv6" : "tt:IPv4", [],
            [XMLNode("tt:Enabled", true), XMLNode("tt:Config", [], members)])
    }

    private static func networkProtocols(_ call: Call) -> XMLNode {
        let port = call.base.split(separator: ":").last.flatMap { Int($0) } ?? 80
        var protocols = [("HTTP", port)]
        for stream in call.facts.streams where !protocols.contains(where: { $0.1 == stream.port }) {
            protocols.append(("RTSP", stream.port))
        }
        return XMLNode(
            "tds:GetNetworkProtocolsResponse", [],
            protocols.map { name, port in
                XMLNode(
                    "tds:NetworkProtocols", [],
                    [XMLNode("tt:Name", name), XMLNode("tt:Enabled", true), XMLNode("tt:Port", port)])
            })
    }
}
