// Whether an address lies in one of the networks that a setting lists.

import { BlockList } from 'node:net';
import { plainAddress } from './client-address.ts';

/** Whether the address, in the form of plainAddress, is in one of the networks. */
export type NetworkMatcher = (address: string) => boolean;

/** Takes addresses and CIDR blocks, already checked to be such (config/load.ts). */
export function networkMatcher(networks: readonly string[]): NetworkMatcher {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const plain = plainAddress(address) ?? address;
    // Addresses are compared in their plain form, so a block of IPv4-mapped addresses is one of IPv4.
    const mappedBits = family(address) !== family(plain) ? 96 : 0;
    if (prefix === undefined) list.addAddress(plain, family(plain));
    else list.addSubnet(plain, Math.max(0, Number(prefix) - mappedBits), family(plain));
  }
  return (address) => list.check(address, family(address));
}

function family(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}
