// A codec for `flexwire vectors check`, made of @platformatic/kafka.
//
// The library reads responses and writes requests, so only responses are decoded (--decode-only).
// It returns all versions of a response in the shape of the newest, with values for fields that a
// version lacks. So only the newest version of each response is read here. It skips unknown tagged
// fields, and returns records as objects of its own.

import { readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'

// npm installs beside this file. The library exports its clients alone, so its files are named.
const root = new URL('./node_modules/@platformatic/kafka/dist/', import.meta.url)
const { Reader } = await import(new URL('protocol/reader.js', root))

// Their objects have more than the message: records as objects, names, absent tagged fields.
const OTHERWISE = new Set(['ApiVersionsResponse', 'FetchResponse', 'ProduceResponse'])
const RENAMED = { resourcePatternType: 'patternType' }
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

function parsers () {
  const found = new Map()
  for (const folder of readdirSync(new URL('apis/', root), { withFileTypes: true })) {
    if (!folder.isDirectory()) continue
    for (const file of readdirSync(new URL(`apis/${folder.name}/`, root))) {
      const match = /^([a-z-]+)-v(\d+)\.js$/.exec(file)
      if (match === null) continue
      const newest = found.get(match[1])
      if (newest === undefined || newest.version < Number(match[2])) {
        const place = new URL(`apis/${folder.name}/${file}`, root)
        found.set(match[1], { version: Number(match[2]), place })
      }
    }
  }
  return new Map([...found].map(([name, one]) => [`${pascal(name)}Response ${one.version}`, one.place]))
}

function pascal (name) {
  return name.split('-').map(word => word[0].toUpperCase() + word.slice(1)).join('')
}

function toForm (value) {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string' && UUID.test(value)) {
    return Buffer.from(value.replaceAll('-', ''), 'hex').toString('base64url')
  }
  if (Buffer.isBuffer(value)) return value.toString('base64')
  if (Array.isArray(value)) return value.map(toForm)
  if (value instanceof Map) return [...value.values()].map(toForm)
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [RENAMED[key] ?? key, toForm(one)])
    )
  }
  return value
}

async function answer (question, known) {
  const place = known.get(`${question.message} ${question.version}`)
  if (question.do !== 'decode' || place === undefined || OTHERWISE.has(question.message)) {
    return { unsupported: 'only the newest version of most responses is read' }
  }
  const { parseResponse } = await import(place)
  const reader = Reader.from(Buffer.from(question.hex, 'hex'))
  try {
    return { json: toForm(parseResponse(0, question.apiKey, question.version, reader)) }
  } catch (error) {
    // A response with an error code is whole, and raised.
    if (error.response !== undefined) return { json: toForm(error.response) }
    return { refused: `${error.name}: ${error.message}` }
  }
}

const known = parsers()
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line), known)) + '\n')
}
