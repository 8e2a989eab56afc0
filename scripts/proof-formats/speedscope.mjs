// SPDX-License-Identifier: Apache-2.0
//
// Opens files in speedscope, in Chromium without a screen: node speedscope.mjs SPEEDSCOPE FOLDER FILE... Of each file
// FOLDER gets a picture, NAME.png, and NAME.json, the profile as speedscope has it: what it saves on Ctrl-S. What
// speedscope says of a file that it does not take is in NAME.error.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const [speedscope, folder, ...files] = process.argv.slice(2)
const PATIENCE_MS = 120000
const SETTLE_MS = 1500 // the picture is drawn some frames after the profile is there
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function until(what, question) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(100)) {
    const answer = await question()
    if (answer) return answer
  }
  throw new Error(`${what}: not in ${PATIENCE_MS} ms`)
}

// What is served: speedscope's own folder, and the files below /profile/.
const server = createServer((request, response) => {
  const name = decodeURIComponent(new URL(request.url, 'http://x').pathname)
  const file = name.startsWith('/profile/')
    ? files.find(file => path.basename(file) === name.slice('/profile/'.length))
    : path.join(speedscope, path.normalize(name))
  if (!file || !existsSync(file)) return response.writeHead(404).end()
  const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  response.writeHead(200, { 'Content-Type': types[path.extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file))
})

// A connection to one page of the browser: `ask` sends a command, `said` has what dialogs said.
async function openPage(port) {
  const page = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()).find(target => target.type === 'page')
  const socket = new WebSocket(page.webSocketDebuggerUrl)
  const waiting = new Map()
  const said = []
  let last = 0
  const ask = (method, params = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, answer => (answer.error ? reject(new Error(answer.error.message)) : resolve(answer.result)))
      socket.send(JSON.stringify({ id: last, method, params }))
    })
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.method === 'Page.javascriptDialogOpening') {
      said.push(message.params.message)
      ask('Page.handleJavaScriptDialog', { accept: true })
    }
    waiting.get(message.id)?.(message)
  }
  await new Promise(resolve => (socket.onopen = resolve))
  await ask('Page.enable')
  await ask('Page.addScriptToEvaluateOnNewDocument', {
    source: 'URL.createObjectURL = blob => { window.saved = blob; return "#" }',
  })
  return { ask, said }
}

async function evaluate(page, expression) {
  const done = await page.ask('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
  return done.result.value
}

async function show(page, port, file) {
  const name = path.basename(file)
  page.said.length = 0
  await page.ask('Page.navigate', { url: 'about:blank' })
  await page.ask('Page.navigate', { url: `http://127.0.0.1:${port}/index.html#profileURL=/profile/${encodeURIComponent(name)}` })
  const saved = await until(name, async () => {
    if (await evaluate(page, 'document.body.innerText.includes("Something went wrong")')) page.said.push('Something went wrong')
    if (page.said.length) return 'refused'
    await evaluate(page, 'window.dispatchEvent(new KeyboardEvent("keydown", { key: "s", code: "KeyS", ctrlKey: true }))')
    return evaluate(page, 'window.saved ? window.saved.text() : ""')
  })
  if (page.said.length) return writeFileSync(path.join(folder, name + '.error'), page.said.join('\n'))
  writeFileSync(path.join(folder, name + '.json'), saved)
  await sleep(SETTLE_MS)
  const picture = await page.ask('Page.captureScreenshot', { format: 'png' })
  writeFileSync(path.join(folder, name + '.png'), Buffer.from(picture.data, 'base64'))
}

mkdirSync(folder, { recursive: true })
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const profile = path.join(folder, 'chromium')
rmSync(profile, { recursive: true, force: true })
const browser = spawn('chromium', [
  '--headless=new', '--no-sandbox', '--no-first-run', '--enable-unsafe-swiftshader', '--remote-debugging-port=0',
  '--window-size=1600,1000', `--user-data-dir=${profile}`, 'about:blank',
], { stdio: 'ignore' })
try {
  const told = path.join(profile, 'DevToolsActivePort')
  await until('chromium', () => existsSync(told) && readFileSync(told, 'utf8').includes('\n'))
  const page = await openPage(readFileSync(told, 'utf8').split('\n')[0])
  for (const file of files) await show(page, server.address().port, file)
} finally {
  browser.kill()
  server.close()
}
